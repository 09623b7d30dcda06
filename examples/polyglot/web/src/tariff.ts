/** The tariff: zones by postcode, surcharges, and the price of a parcel. */

import { type Parcel, Zone } from "./parcel";

export interface Surcharge {
  readonly name: string;
  cents(parcel: Parcel): number;
}

export class FragileSurcharge implements Surcharge {
  readonly name = "fragile";

  cents(parcel: Parcel): number {
    return parcel.fragile ? 200 : 0;
  }
}

export class HeavySurcharge implements Surcharge {
  readonly name = "heavy";

  constructor(private readonly limit: number) {}

  cents(parcel: Parcel): number {
    return parcel.grams > this.limit ? 450 : 0;
  }
}

const surcharges: readonly Surcharge[] = [new FragileSurcharge(), new HeavySurcharge(20_000)];

export function zoneOf(parcel: Parcel, home: string): Zone {
  if (/^9[78]/.test(parcel.postcode)) {
    return Zone.Remote;
  }
  return parcel.postcode.slice(0, 2) === home.slice(0, 2) ? Zone.Local : Zone.Regional;
}

export function price(parcel: Parcel, zone: Zone): number {
  const steps = Math.ceil(parcel.grams / 500);
  const extra = surcharges.reduce((sum, each) => sum + each.cents(parcel), 0);
  return zone * (350 + steps * 120) + extra;
}
