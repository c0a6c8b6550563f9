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

const columns = new Map();

// The scores of one method at one α, calibration and test apart, each sorted.
function sortedScores(method, alpha) {
  const key = `${method}/${alpha}`;
  if (!columns.has(key)) {
    const scores = unpacked(explorer.methods[method].scores);
    const wide = explorer.alphas.length;
    const column = Float32Array.from({ length: scores.length / wide }, (_, i) => scores[i * wide + alpha]);
    const n = explorer.calibration;
    columns.set(key, { calibration: column.slice(0, n).sort(), test: column.slice(n).sort() });
  }
  return columns.get(key);
}

function meanTestRadius(method) {
  const radius = unpacked(explorer.methods[method].mean_radius).subarray(explorer.calibration);
  return radius.reduce((sum, x) => sum + x, 0) / radius.length;
}

// λ̂, bandwidth and the covered test functions at (α, δ), by the recorded split.
function measured(method, alpha, millionths) {
  const n = explorer.calibration;
  const rank = functionRank(n, millionths);
  if (rank > n) return { feasible: false, rank };
  const { calibration, test } = sortedScores(method, alpha);
  const scale = calibration[rank - 1];
  if (!Number.isFinite(scale)) return { feasible: false, rank, zero: true };
  const hits = atMost(test, scale);
  const [low, high] = unpacked(explorer.intervals).subarray(2 * hits, 2 * hits + 2);
  const reached = hits * MILLION >= test.length * (MILLION - millionths);
  const bandwidth = scale * meanTestRadius(method);
  return { feasible: true, rank, scale, bandwidth, share: hits / test.length, low, high, reached };
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
