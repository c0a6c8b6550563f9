// Ranks, scales and coverage from stored scores: what uqno.calibrate and the metrics compute.

// j = n + 1 − ⌊(n + 1) δ⌋ with δ in millionths: whole numbers throughout, so no rank is off by one.
function functionRank(n, millionths) {
  const product = (n + 1) * millionths;
  return n + 1 - (product - (product % MILLION)) / MILLION;
}

const smallestFunctions = (millionths) => Math.max(2, Math.ceil(MILLION / millionths) - 1);
// 1 / (n + 1) to three digits, rounded up, so that it works if it is typed in.
function smallestDelta(n) {
  const power = 10 ** (2 + Math.ceil(Math.log10(n + 1)));
  return Math.ceil(power / (n + 1)) / power;
}

// A function of numbers that computes each answer once: sliders ask the same again and again.
function remembered(compute) {
  const held = new Map();
  return (...numbers) => {
    const key = numbers.join("/");
    if (!held.has(key)) held.set(key, compute(...numbers));
    return held.get(key);
  };
}

// The scores of one method at one α, calibration and test apart, each sorted.
const sortedScores = remembered((method, alpha) => {
  const scores = unpacked(explorer.methods[method].scores);
  const wide = explorer.alphas.length;
  const column = Float32Array.from({ length: scores.length / wide }, (_, i) => scores[i * wide + alpha]);
  const n = explorer.calibration;
  return { calibration: column.slice(0, n).sort(), test: column.slice(n).sort() };
});

const meanTestRadius = remembered((method) => {
  const uncertainty = unpacked(explorer.methods[method].mean_uncertainty).subarray(explorer.calibration);
  return uncertainty.reduce((sum, x) => sum + x, 0) / uncertainty.length;
});

// λ̂, bandwidth and the covered test functions at (α, δ), by the recorded split.
function measured(method, alpha, millionths) {
  const n = explorer.calibration;
  const rank = functionRank(n, millionths);
  if (rank > n) return { feasible: false, rank };
  const { calibration, test } = sortedScores(method, alpha);
  const scale = calibration[rank - 1];
  if (!Number.isFinite(scale)) return { feasible: false, rank, zero: true };
  const hits = atMost(test, scale);
  const bandwidth = scale * meanTestRadius(method);
  return { feasible: true, rank, scale, bandwidth, hits, share: hits / test.length, usual: usualHits(rank) };
}

// The numbers of covered test functions that 95 of 100 calibration sets give, [least, most]: the
// promise is kept on average over calibration sets, and one set is a draw. Without ties the number
// has the beta-binomial law of T trials with parameters j and n + 1 − j.
const usualHits = remembered((rank) => {
  const [a, b, trials] = [rank, explorer.calibration + 1 - rank, explorer.test];
  const logs = [0]; // of the law, up to a factor: from each number of hits to the next
  for (let h = 0; h < trials; h++) {
    logs.push(logs[h] + Math.log(((trials - h) * (a + h)) / ((h + 1) * (b + trials - h - 1))));
  }
  const largest = Math.max(...logs);
  const law = logs.map((log) => Math.exp(log - largest));
  const total = law.reduce((sum, x) => sum + x, 0);
  return [quantile(law, 0.025 * total), quantile(law, 0.975 * total)];
});

// The first place at which the running sum reaches `wanted`.
function quantile(law, wanted) {
  let sum = 0;
  const found = law.findIndex((x) => (sum += x) >= wanted);
  return found < 0 ? law.length - 1 : found;
}

// How many of all m points have a ratio ≤ λ, as uqno.evaluation.profile has it: exact at the rungs,
// between two of them off by less than their distance.
function coveredPoints(view, scale) {
  const ratios = unpacked(view.ratios);
  const step = atMost(ratios, scale);
  const inside = step < ratios.length;
  const [below, low] = step ? [explorer.rungs[step - 1], ratios[step - 1]] : [0, 0];
  const [above, high] = inside ? [explorer.rungs[step], ratios[step]] : [explorer.points + 1, Infinity];
  const part = Number.isFinite(high) ? (scale - low) / (high - low) : 0;
  return Math.min(Math.floor(below + part * (above - below)), above - 1);
}
