/** The nouns: parcels and the zones they travel to. */

export interface Parcel {
  readonly id: string;
  readonly grams: number;
  readonly postcode: string;
  readonly fragile: boolean;
}

export enum Zone {
  Local = 1,
  Regional = 2,
  Remote = 3,
}
