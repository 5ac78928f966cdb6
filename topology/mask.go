package topology

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"
)

// ParseMask reads the kernel's mask format: hexadecimal words of 32 CPUs with commas between, the highest first, white
// space around the whole. "3,0000000f" is 0-3,32-33; an empty text is the empty set. Every id is below [MaxCPUs]. Any
// other text is an error that quotes the wrong part. Source: bitmap_parse, lib/bitmap-str.c, and bitmap_string,
// lib/vsprintf.c.
func ParseMask(s string) (cpuset.CPUSet, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return cpuset.New(), nil
	}
	const wordBits = 32
	words := strings.Split(s, ",")
	if len(words) > MaxCPUs/wordBits {
		return cpuset.CPUSet{}, fmt.Errorf("mask %s: %d words: %d hold the %d CPUs there can be", quote(s), len(words),
			MaxCPUs/wordBits, MaxCPUs)
	}
	var ids []int
	for i, word := range words {
		bits, err := strconv.ParseUint(word, 16, wordBits)
		if err != nil {
			return cpuset.CPUSet{}, fmt.Errorf("mask %s: %s is no hexadecimal number of 32 bits", quote(s), quote(word))
		}
		lowest := wordBits * (len(words) - 1 - i)
		for bit := range wordBits {
			if bits>>bit&1 == 1 {
				ids = append(ids, lowest+bit)
			}
		}
	}
	return cpuset.New(ids...), nil
}
