package demo

import (
	"encoding/json"
	"testing"
)

const envVictim = "UNTHROTTLE_DEMO_VICTIM"

func victim() int { return 0 }

func TestRunHere(t *testing.T) {
	h, m := here(t)
	r, err := Run(t.Context(), Options{Host: h, Machine: m, Seconds: 5})
	if err != nil {
		t.Fatal(err)
	}
	b, _ := json.MarshalIndent(r, "", " ")
	t.Log(string(b))
}
