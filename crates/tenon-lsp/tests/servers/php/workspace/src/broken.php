<?php

namespace Shop;

unknown_function(1);
(new Item(1))->cost();
