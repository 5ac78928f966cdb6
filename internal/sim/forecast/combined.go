package forecast

import "slices"

// parts are the remedies that a remedy combines; nil: none.
func (r Remedy) parts() []Remedy {
	if parts := r.effect().Parts; parts != nil {
		return parts(r)
	}
	return nil
}

// same reports whether two remedies are one with the same settings.
func (r Remedy) same(other Remedy) bool {
	r.of, other.of = nil, nil
	return r == other
}

// leaveOut removes rows that combine remedies where they are no better than each of these. Rows at other loads of the host
// go by the row at the recorded one.
func (m *maker) leaveOut() {
	keep := func(i int) bool {
		parts := m.f.Rows[i].Remedy.parts()
		at := m.rowOf(m.f.Rows[i].Remedy)
		return parts == nil || at >= 0 && m.beats(at, parts)
	}
	var rows []Row
	var all [][]result
	for i := range m.f.Rows {
		if keep(i) {
			rows, all = append(rows, m.f.Rows[i]), append(all, m.all[i])
		}
	}
	m.f.Rows, m.all = rows, all
}

// rowOf is the index of the row of a remedy at the recorded load of the host; -1: there is none.
func (m *maker) rowOf(r Remedy) int {
	return slices.IndexFunc(m.f.Rows, func(row Row) bool { return row.HostLoad == 0 && row.Remedy.same(r) })
}

// beats reports whether the interval of a row lies below that of each part. A part that cannot be in force is no choice.
func (m *maker) beats(i int, parts []Remedy) bool {
	own := m.f.Rows[i].JudgedRange
	if own == nil {
		return false
	}
	return !slices.ContainsFunc(parts, func(part Remedy) bool {
		at := m.rowOf(part)
		if at < 0 || m.f.Rows[at].Refused != "" {
			return false
		}
		of := m.f.Rows[at].JudgedRange
		return of == nil || own.High >= of.Low
	})
}
