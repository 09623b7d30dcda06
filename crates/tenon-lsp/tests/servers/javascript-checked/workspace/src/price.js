/**
 * @typedef {{ net: number, tax: number }} Price
 */

/**
 * @param {Price} price
 * @returns {number}
 */
export function gross(price) {
  return price.net + price.tax;
}
