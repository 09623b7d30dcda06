/** @param {number} x */
export function twice(x) {
  return x + x;
}
