// Package histogram draws distributions side by side as bars of characters.
//
// # Rule
//
// Each bar is its row's share of its own column's total, and all bars have one
// scale, so that columns with different totals compare. A count above 0 is never
// without a bar.
//
// # Example
//
// Two columns over the rows 0-1 and 1-2, in 30 columns of ASCII:
//
//	     quota        pin
//	0-1  ##### 5      ######### 9
//	1-2  ##### 5      # 1
//
// # Limits
//
// A bar is at least four characters wide at full length, also where the terminal
// has no room for that.
package histogram

import (
	"fmt"
	"math"
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
)

// Column is one distribution over the rows that all columns share.
type Column struct {
	Title  string
	Counts []int
	// Text writes a count; nil: as a number.
	Text func(n int) string
}

func (c Column) text(n int) string {
	if c.Text != nil {
		return c.Text(n)
	}
	return fmt.Sprint(n)
}

// Bars draws lengths: in eighths of a character, or with ASCII in whole ones.
type Bars struct{ ASCII bool }

// Bar is share (0 to 1) of width characters; anything above 0 shows.
func (b Bars) Bar(share float64, width int) string {
	if share <= 0 || width <= 0 {
		return ""
	}
	if b.ASCII {
		return strings.Repeat("#", min(width, max(1, int(math.Round(share*float64(width))))))
	}
	eighths := min(8*width, max(1, int(math.Round(share*float64(8*width)))))
	bar := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		bar += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return bar
}

// minBar is the least width of a bar in characters.
const minBar = 4

// Lines draws two or more distributions side by side, in that many columns of a
// terminal. labels name the rows.
func Lines(labels []string, columns []Column, columnsWide int, b Bars) []string {
	labelWidth, countWidth, longest := 0, 1, 0.0
	for _, l := range labels {
		labelWidth = max(labelWidth, text.Width(l))
	}
	for _, c := range columns {
		for _, n := range c.Counts {
			countWidth = max(countWidth, text.Width(c.text(n)))
			longest = max(longest, share(n, c.Counts))
		}
	}
	const gap = 2
	room := (columnsWide - labelWidth) / max(1, len(columns))
	barWidth := max(minBar, room-gap-1-countWidth)

	lines := make([]string, 0, len(labels)+1)
	title := strings.Repeat(" ", labelWidth)
	for _, c := range columns {
		title += strings.Repeat(" ", gap) + text.Pad(c.Title, barWidth+1+countWidth)
	}
	lines = append(lines, strings.TrimRight(title, " "))
	for i, label := range labels {
		line := strings.Repeat(" ", labelWidth-text.Width(label)) + label
		for _, c := range columns {
			count := ""
			bar := ""
			if n := c.Counts[i]; n > 0 {
				count = c.text(n)
				bar = b.Bar(share(n, c.Counts)/longest, barWidth)
			}
			line += strings.Repeat(" ", gap) + text.Pad(bar+" "+count, barWidth+1+countWidth)
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
}

// share is n of the sum of all.
func share(n int, all []int) float64 {
	sum := 0
	for _, other := range all {
		sum += other
	}
	if sum == 0 {
		return 0
	}
	return float64(n) / float64(sum)
}
