export function rounded(price) {
  return Math.round(price);
}
