package main

import (
	"math"
	"strings"
	"testing"
)

// Each row is in the plan three times, and the page shows what came with its bound.
func TestNarrowsTable(t *testing.T) {
	have := &records{failed: map[piece]int{}}
	seen := map[piece]int{}
	for _, s := range stages() {
		if s.kind != narrowed {
			continue
		}
		for _, p := range s.next(have) {
			if seen[p]++; !s.covers(p) {
				t.Errorf("%v is none of its stage's", p)
			}
		}
	}
	if len(seen) != 3*len(narrowRows) {
		t.Errorf("%d pieces, want %d", len(seen), 3*len(narrowRows))
	}
	have.All = append(have.All, record{Piece: narrowPiece("killed", 1), Narrow: &narrowFigure{0.25, true}}, record{Piece: narrowPiece("killed", 2), Narrow: &narrowFigure{1.5, false}})
	p := page{have: have}
	p.narrow()
	for _, want := range []string{"| at most 1 s | 0.25, 1.5 | 1 of 2 |", "| at least 0.95 | not measured yet |", "| none | not measured yet |"} {
		if !strings.Contains(strings.Join(strings.Fields(p.String()), " "), want) {
			t.Errorf("%q is missing in\n%s", want, p.String())
		}
	}
	for _, r := range narrowRows {
		if r.least && math.IsInf(r.bound, 0) {
			t.Errorf("%s: at least infinity", r.name)
		}
	}
}
