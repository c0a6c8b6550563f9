"use strict";
// The data in the page, and how text, numbers and elements are made of them. Strings become text
// nodes or attributes, never markup.

const MILLION = 1000000;
const $ = (id) => document.getElementById(id);
const { page, results, explorer } = Object.fromEntries(
  ["page", "results", "explorer"].map((key) => [key, JSON.parse($(`${key}-data`).textContent)]),
);

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}
const make = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, tag), attributes, children);

// What a person reads, and beside it the number that a machine reads.
function show(id, text, value) {
  $(id).textContent = text;
  if (value === undefined || value === null) delete $(id).dataset.value;
  else $(id).dataset.value = value;
}

// Black lines would vanish on a dark page.
const colourOf = (method) =>
  ({ "#000000": "var(--ink)", undefined: "var(--quiet)" })[page.looks[method]] ?? page.looks[method];
const dot = (method) => make("span", { class: "dot", style: `background:${colourOf(method)}` });

// --- numbers as text: the same as uqno.evaluation.table

function number(x, digits = 3) {
  if (x === null || x === undefined) return "–";
  if (!Number.isFinite(x)) return "∞";
  if (x !== 0 && Math.abs(x) < 1e-2) return x.toExponential(digits - 1);
  return Math.abs(x) >= 10 ** digits - 0.5 ? x.toFixed(0) : x.toPrecision(digits);
}

const percent = (share) => (share === 1 ? "100 %" : `${Math.min(100 * share, 99.9).toFixed(1)} %`);
const tidy = (x, digits = 6) => String(Number(x.toPrecision(digits)));
const ordinal = (i) =>
  `${i}${[11, 12, 13].includes(i % 100) ? "th" : ({ 1: "st", 2: "nd", 3: "rd" }[i % 10] ?? "th")}`;
const tidyPercent = (share) => `${tidy(100 * share)} %`;

function tickText(x) {
  if (x === 0) return "0";
  const small = Math.abs(x) < 1e-2 || Math.abs(x) >= 1e5;
  return small
    ? x
        .toExponential(2)
        .replace(/\.?0+e/, "e")
        .replace("e+", "e")
    : tidy(x, 4);
}
