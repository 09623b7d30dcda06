import { cheapest, Item } from "./model.js";

export class Basket {
  private readonly items: Item[] = [];

  add(item: Item): void {
    this.items.push(item);
  }

  bargain(): Item | undefined {
    return cheapest(this.items);
  }
}
