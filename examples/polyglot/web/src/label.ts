/** Labels: what is printed and glued on a parcel. */

import { type Parcel, Zone } from "./parcel";
import { price, zoneOf } from "./tariff";

export interface Label {
  readonly heading: string;
  readonly cents: number;
}

export function labelFor(parcel: Parcel, home: string): Label {
  const zone = zoneOf(parcel, home);
  return { heading: `${parcel.id} ${parcel.postcode} ${Zone[zone]}`, cents: price(parcel, zone) };
}
