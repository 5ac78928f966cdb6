package report

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/store"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// Cores cost what the first pattern of their node says; those of no pattern are told apart. What comes back is in each
// line the same part of the money as of the cores.
func TestMoney(t *testing.T) {
	limit := price(forecast.Limit, 1000, 2000, 3000)
	unknown := rowOf("unknown", 5, noon, 4, 4)
	unknown.LimitCPUs, unknown.LimitScope = new(3.0), "pod"
	elsewhere := rowOf("cart", 7, noon, 8, 4)
	elsewhere.Node = "other"
	dir := t.TempDir()
	if err := store.Write(dir, []demand.Row{pricedAs(rowOf("web", 0, noon, 4, 4), limit), pricedAs(rowOf("web", 1, noon, 4, 4), limit),
		unknown, elsewhere}); err != nil {
		t.Fatal(err)
	}
	asked := func(prices ...CorePrice) view.Document {
		d, err := Make(t.Context(), opened(t, 0),
			Options{Files: filesIn(t, dir), Now: noon.Add(time.Hour), Bound: 0.001, CorePrices: prices})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := asked(CorePrice{"n1", 3}, CorePrice{"n?", 1})
	month := func(what string, m *view.PerMonth, now, saved, low, high float64) {
		t.Helper()
		if m == nil {
			t.Fatalf("%s: no money", what)
		}
		near(t, what+", now", &m.Now, 730*now)
		near(t, what+", saved", &m.Saved, 730*saved)
		near(t, what+", low", &m.SavedLow, 730*low)
		near(t, what+", high", &m.SavedHigh, 730*high)
	}
	month("web", serviceOf(t, d, "web/app").PerMonth, 4+12, 8, 4, 12)
	month("its remedy", lineOf(t, d, view.Lower, true).PerMonth, 4+12, 8, 4, 12)
	month("unknown", serviceOf(t, d, "unknown/app").PerMonth, 12, 0, 0, 0)
	month("elsewhere", serviceOf(t, d, "cart/app").PerMonth, 0, 0, 0, 0)
	month("all", d.Ledger.PerMonth, 4+12+12, 8, 4, 12)
	near(t, "without a price", &d.CoresWithoutPrice, 8)
	if d = asked(); d.Ledger.PerMonth != nil || serviceOf(t, d, "web/app").PerMonth != nil || d.ByRemedy[0].PerMonth != nil ||
		d.CoresWithoutPrice != 0 {
		t.Errorf("without prices: %+v", d)
	}
	d = asked(CorePrice{"*", 1})
	month("all at one price", d.Ledger.PerMonth, d.Ledger.CoresNow, d.Ledger.Saved, d.Ledger.SavedLow, d.Ledger.SavedHigh)
}
