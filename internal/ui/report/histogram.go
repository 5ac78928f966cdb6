package report

import (
	"fmt"
	"math"
	"strings"
)

// histogramColumn is one distribution over the rows that all columns share.
type histogramColumn struct {
	title  string
	counts []int
	// text says a count; nil: as a number.
	text func(n int) string
}

func (c histogramColumn) said(n int) string {
	if c.text != nil {
		return c.text(n)
	}
	return fmt.Sprint(n)
}

// bars draws lengths: in eighths of a character, or with ASCII in whole ones.
type bars struct{ ascii bool }

// bar is share (0 to 1) of width characters; anything above 0 shows.
func (b bars) bar(share float64, width int) string {
	if share <= 0 || width <= 0 {
		return ""
	}
	if b.ascii {
		return strings.Repeat("#", min(width, max(1, int(math.Round(share*float64(width))))))
	}
	eighths := min(8*width, max(1, int(math.Round(share*float64(8*width)))))
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return text
}

// minBar is the least width of a bar in characters.
const minBar = 4

// histogramLines draws two or more distributions side by side, in width
// columns: each bar is its row's share of its own column's total, and all bars
// have one scale, so that columns with different totals can be compared.
func histogramLines(labels []string, columns []histogramColumn, columnsWide int, b bars) []string {
	labelWidth, countWidth, longest := 0, 1, 0.0
	for _, l := range labels {
		labelWidth = max(labelWidth, width(l))
	}
	for _, c := range columns {
		for _, n := range c.counts {
			countWidth = max(countWidth, width(c.said(n)))
			longest = max(longest, share(n, c.counts))
		}
	}
	const gap = 2
	room := (columnsWide - labelWidth) / max(1, len(columns))
	barWidth := max(minBar, room-gap-1-countWidth)

	lines := make([]string, 0, len(labels)+1)
	title := strings.Repeat(" ", labelWidth)
	for _, c := range columns {
		title += strings.Repeat(" ", gap) + pad(c.title, barWidth+1+countWidth)
	}
	lines = append(lines, strings.TrimRight(title, " "))
	for i, label := range labels {
		line := strings.Repeat(" ", labelWidth-width(label)) + label
		for _, c := range columns {
			count := ""
			bar := ""
			if n := c.counts[i]; n > 0 {
				count = c.said(n)
				bar = b.bar(share(n, c.counts)/longest, barWidth)
			}
			line += strings.Repeat(" ", gap) + pad(bar+" "+count, barWidth+1+countWidth)
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

// pad fills text up with blanks.
func pad(text string, columns int) string {
	return text + strings.Repeat(" ", max(0, columns-width(text)))
}
