package main

import "testing"

func TestOwnBudget(t *testing.T) {
	own, err := ownBudget("1.5%", "64MiB")
	if err != nil || own.CPU != 0.015 || own.MemoryBytes != 64<<20 {
		t.Error(own, err)
	}
	if own, err := ownBudget("", ""); err != nil || own.CPU != 0 || own.MemoryBytes != 0 {
		t.Error(own, err)
	}
	for _, bad := range [][2]string{{"1", ""}, {"x%", ""}, {"-1%", ""}, {"0%", ""}, {"NaN%", ""}, {"", "64"}, {"", "0MiB"}, {"", "-3MiB"}, {"", "1.5MiB"}} {
		if _, err := ownBudget(bad[0], bad[1]); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
