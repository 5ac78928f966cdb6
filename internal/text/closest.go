package text

import "strings"

// maxWord is how many bytes of a longer word Distance compares.
const maxWord = 128

// Distance is how far a word is from a name that it may mean: 0 if one contains the other, else the number of
// single-letter edits, of which to swap two neighbours is one. It is -1 if more than a third of the letters differ. Case
// does not count.
func Distance(word, name string) int {
	a, b := []rune(strings.ToLower(cutWord(word))), []rune(strings.ToLower(cutWord(name)))
	if len(a) == 0 || len(b) == 0 {
		return -1
	}
	if len(a) >= 3 && strings.Contains(string(b), string(a)) || len(b) >= 3 && strings.Contains(string(a), string(b)) {
		return 0
	}
	limit := max(1, max(len(a), len(b))/3)
	if diff := len(a) - len(b); diff > limit || -diff > limit {
		return -1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range b {
			cost := last[j]
			if a[i] != b[j] {
				cost++
			}
			row[j+1] = min(cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	if row[len(b)] > limit {
		return -1
	}
	return row[len(b)]
}

func cutWord(s string) string { return s[:min(len(s), maxWord)] }

// DidYouMean is "; did you mean NAME?" with the name that is nearest to a word; "" if none is near.
func DidYouMean(word string, names []string) string {
	best, nearest := -1, ""
	for _, name := range names {
		if d := Distance(word, name); d >= 0 && (best < 0 || d < best) {
			best, nearest = d, name
		}
	}
	if best < 0 {
		return ""
	}
	return "; did you mean " + nearest + "?"
}
