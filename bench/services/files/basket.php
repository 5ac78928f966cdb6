<?php
// A page that sorts and prints a basket.
$items = [];
for ($i = 0; $i < 9000; $i++) {
    $items["item " . md5((string)$i)] = $i % 97;
}
ksort($items);
header("Content-Type: text/plain");
foreach (array_slice($items, 0, 50) as $name => $price) {
    echo "$name costs $price\n";
}
