<?php

namespace Shop;

$größe = new Item(3);
$kosten = $größe->total(2);
