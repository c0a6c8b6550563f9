// Arrays that uqno.evaluation.explorer packed.

const KINDS = {
  float32: [Float32Array, 1],
  index16: [Uint16Array, 1],
  uint16: [Uint16Array, 65535],
  uint8: [Uint8Array, 255],
};
const seen = new Map();

// The values of a packed array, flat; each is read once.
function unpacked(held) {
  if (!seen.has(held)) seen.set(held, decoded(held));
  return seen.get(held);
}

function decoded(held) {
  const size = held.shape.reduce((a, b) => a * b, 1);
  if (held.kind === "constant") return new Float64Array(size).fill(held.low);
  const text = atob(held.data);
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  const [Kind, top] = KINDS[held.kind];
  const raw = new Kind(bytes.buffer); // little-endian, as all machines with a browser are
  if (top === 1) return raw; // as they are
  const step = (held.high - held.low) / top;
  return Float64Array.from(raw, (q) => held.low + q * step);
}

const fieldOf = (place) => explorer.fields[place];

// The least and the largest value of several arrays.
function ends(arrays) {
  let [low, high] = [Infinity, -Infinity];
  for (const array of arrays) {
    for (const x of array) {
      if (x < low) low = x;
      if (x > high) high = x;
    }
  }
  return [low, high];
}

// How many of a sorted array are at most x.
function atMost(sorted, x) {
  let low = 0,
    high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= x) low = middle + 1;
    else high = middle;
  }
  return low;
}
