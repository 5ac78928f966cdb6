<?php
// A page that computes for each request.
$sum = 0;
for ($i = 0; $i < 3600000; $i++) {
    $sum += $i % 7;
}
echo "$sum\n";
