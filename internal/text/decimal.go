package text

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseDecimal reads a number in decimal notation: "2", "0.5", "-1.5e3". It
// refuses what [strconv.ParseFloat] takes beyond that: "0x1p4" (16), "inf", "nan".
func ParseDecimal(text string) (float64, error) {
	foreign := func(r rune) bool { return !strings.ContainsRune("0123456789.+-eE", r) }
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.ContainsFunc(text, foreign) {
		return 0, fmt.Errorf("%.40q is no number: write it as 2 or 0.5", text)
	}
	return number, nil
}
