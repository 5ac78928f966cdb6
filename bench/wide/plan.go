package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// part is a stage of the plan with what is measured of it and left.
type part struct {
	about          string
	measured, left int
	takes          time.Duration // of what is left
}

// planOf is the plan with its hours. How many loads a search takes depends on what comes: each objective is taken to be lost above
// 60 %, which asks for as many loads as most do.
func planOf(have *records) (all []part) {
	sofar := &records{failed: map[piece]int{}}
	sofar.All = append(sofar.All, have.All...)
	seen, counted := map[piece]bool{}, map[piece]bool{}
	for _, s := range stages() {
		is := part{about: s.about}
		for {
			var asked []piece
			for _, p := range s.next(sofar) {
				if !seen[p] && !sofar.has(p) {
					asked = append(asked, p)
				}
				seen[p] = true
			}
			if len(asked) == 0 {
				break
			}
			is.takes += asked[0].Machine.boots() * time.Duration((len(asked)+mostOfGuest-1)/mostOfGuest)
			for _, p := range asked {
				is.left++
				is.takes += p.takes()
				sofar.All = append(sofar.All, record{Piece: p, Point: &figures{Met: p.Share <= 0.6}})
			}
		}
		for _, r := range have.All {
			if s.covers(r.Piece) && !counted[r.Piece] { // stages share pieces
				is.measured++
				counted[r.Piece] = true
			}
		}
		all = append(all, is)
	}
	return all
}

// printPlan prints the plan with what is left of it.
func printPlan(to io.Writer, have *records) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "part\tpieces measured\tleft\thours left")
	sum, left, measured := time.Duration(0), 0, 0
	for _, p := range planOf(have) {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.1f\n", p.about, p.measured, p.left, p.takes.Hours())
		sum, left, measured = sum+p.takes, left+p.left, measured+p.measured
	}
	fmt.Fprintf(w, "all\t%d\t%d\t%.1f\n", measured, left, sum.Hours())
	return w.Flush()
}
