package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/store"
)

// What a row has of the remedies' prices comes back as it was, and takes at most 200 bytes of a row.
func TestPricesAreSmall(t *testing.T) {
	const rows, most = 400, 200
	slot := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	of := func(priced bool) (all []demand.Row) {
		for i := range rows {
			r := demand.Row{Schema: demand.SchemaVersion, Start: slot, Began: slot, Seconds: 300, Samples: 300, Node: "n1",
				Service: fmt.Sprintf("service%04d", i), Cgroup: int64(i)}
			if priced {
				// Figures without a pattern, as they come: a multiplier of large primes.
				random := func(k, n int) int { return (i*7919 + k*104729) * 15485863 % 1299709 % n }
				r.PricedAt = new(slot.Add(time.Duration(random(0, 300_000)) * time.Millisecond))
				r.PricedOf = fmt.Sprint("worker-", i%9)
				r.PricedQuantile, r.PricedMicroseconds = new(0.99), new(int64(random(1, 900_000)))
				for k, remedy := range []string{"limit", "burst", "narrow", "pin", "pools", "budget", "shards"} {
					price := demand.Price{Remedy: remedy}
					if random(2+k, 4) == 0 {
						price.Why = fmt.Sprintf("it is slower than recorded with %.3g CPUs, the most that were tried",
							float64(random(k, 6400))/100)
					} else {
						milli := int32(random(3+k, 16_000) + 1)
						price.MilliCPUs, price.LowMilliCPUs, price.HighMilliCPUs = new(milli), new(milli*9/10+1), new(milli*12/10)
						price.Microseconds = new(int64(random(4+k, 900_000)))
					}
					r.Prices = append(r.Prices, price)
				}
			}
			all = append(all, r)
		}
		return all
	}
	size := func(all []demand.Row) int64 {
		dir := t.TempDir()
		if err := store.Write(dir, all); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, "cluster=unknown", "date=2026-11-28", "hour=12", "n1.parquet")
		back, err := store.Read(name)
		if err != nil || len(back) != rows {
			t.Fatalf("%d rows: %v", len(back), err)
		}
		for i := range back {
			is, was := &back[i], &all[i]
			if (is.PricedAt == nil) != (was.PricedAt == nil) || is.PricedAt != nil &&
				(!is.PricedAt.Equal(*was.PricedAt) || !reflect.DeepEqual(is.Prices, was.Prices)) {
				t.Fatalf("row %d: %+v at %v, and it was %+v at %v", i, is.Prices, is.PricedAt, was.Prices, was.PricedAt)
			}
		}
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	with, without := size(of(true)), size(of(false))
	each := float64(with-without) / rows
	t.Logf("%.0f bytes a row", each)
	if each > most || each < 20 {
		t.Errorf("%.0f bytes a row, at most %d", each, most)
	}
}
