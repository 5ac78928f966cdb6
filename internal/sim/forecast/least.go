package forecast

// verdict is how a setting compares with what must be kept: may keeps it at the near end of its interval, is by its
// figure, and surely at the far end. Surely implies is, and is implies may.
type verdict struct{ may, is, surely bool }

// and is that of two things that must both be kept.
func (v verdict) and(o verdict) verdict {
	return verdict{v.may && o.may, v.is && o.is, v.surely && o.surely}
}

// leastOf are the indices of the least values that may do, do, and surely do; -1: none.
type leastOf struct{ may, is, surely int }

// least finds the least of n ascending values by each part of its verdict. It assumes that whatever holds at a value
// holds at larger ones, and judges no value twice: of 64 values at most 7 for the first answer, and a few more for
// the others.
func least(n int, judge func(i int) (verdict, error)) (leastOf, error) {
	known := make(map[int]verdict, n)
	found := leastOf{-1, -1, -1}
	for _, part := range []struct {
		at *int
		of func(verdict) bool
	}{
		{&found.is, func(v verdict) bool { return v.is }},
		{&found.may, func(v verdict) bool { return v.may }},
		{&found.surely, func(v verdict) bool { return v.surely }},
	} {
		low, high := -1, n // low does not hold, high does
		for i, v := range known {
			if part.of(v) {
				high = min(high, i)
			}
		}
		for i, v := range known {
			if !part.of(v) && i < high {
				low = max(low, i)
			}
		}
		for high-low > 1 {
			at := (low + high) / 2
			if high == n {
				at = n - 1 // the largest one first: where it does not hold none does
			}
			v, err := judge(at)
			if err != nil {
				return found, err
			}
			if known[at] = v; part.of(v) {
				high = at
				continue
			}
			if low = at; at == n-1 {
				break
			}
		}
		if high < n {
			*part.at = high
		}
	}
	return found, nil
}
