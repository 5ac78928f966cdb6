package text

import (
	"regexp"
	"slices"
	"strings"
)

const (
	// idDigits is the length of a container's id, leastDigits how many of them a shortened id has at least, as runtimes
	// show it.
	idDigits, leastDigits = 64, 12
)

var (
	hexRun = regexp.MustCompile(`[0-9a-f]{64,}`)
	// inQuotes finds commands between single quotes; the one of "a container's" begins none.
	inQuotes = regexp.MustCompile(`(?:^|[\s(])'[^']*'`)
)

// IDsOnce makes a message shorter in which an id of 64 hex digits stands several times. The first time it stays whole,
// then its first digits stand for it: 12, or as many as tell it from the other ids of the message, with "…" behind them.
// Between single quotes, where commands stand, it stays whole.
func IDsOnce(message string) string {
	all := hexRun.FindAllStringIndex(message, -1)
	var ids []string
	for _, at := range all {
		if at[1]-at[0] == idDigits {
			ids = append(ids, message[at[0]:at[1]])
		}
	}
	var b strings.Builder
	seen, end, quotes := map[string]bool{}, 0, inQuotes.FindAllStringIndex(message, -1)
	quoted := func(at int) bool {
		return slices.ContainsFunc(quotes, func(q []int) bool { return q[0] < at && at < q[1] })
	}
	for _, at := range all {
		id := message[at[0]:at[1]]
		if len(id) != idDigits {
			continue
		}
		if seen[id] && !quoted(at[0]) {
			b.WriteString(message[end:at[0]])
			b.WriteString(shortest(id, ids) + "…")
			end = at[1]
		}
		seen[id] = true
	}
	return b.String() + message[end:]
}

// shortest is the shortest prefix of an id that no other id has, of leastDigits or more.
func shortest(id string, ids []string) string {
	n := leastDigits
	for _, other := range ids {
		for other != id && n < len(id) && strings.HasPrefix(other, id[:n]) {
			n++
		}
	}
	return id[:n]
}
