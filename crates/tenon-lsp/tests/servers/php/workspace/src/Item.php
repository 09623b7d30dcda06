<?php

namespace Shop;

/** Something for sale. */
class Item
{
    private int $price;

    public function __construct(int $price)
    {
        $this->price = $price;
    }

    public function total(int $count): int
    {
        return $this->price * $count;
    }
}

function cheapest(Item $one, Item $other): Item
{
    return $one->total(1) < $other->total(1) ? $one : $other;
}
