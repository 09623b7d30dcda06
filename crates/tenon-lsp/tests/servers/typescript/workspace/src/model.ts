export interface Priced {
  price: number;
}

export class Item implements Priced {
  constructor(
    readonly name: string,
    readonly price: number,
  ) {}

  total(count = 1): number {
    return this.price * count;
  }
}

/** The thing that costs least. */
export function cheapest<T extends Priced>(items: T[]): T | undefined {
  return items.reduce<T | undefined>((best, item) => (best && best.price <= item.price ? best : item), undefined);
}
