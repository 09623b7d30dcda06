export function rounded(price: number): number {
  return Math.round(price);
}
