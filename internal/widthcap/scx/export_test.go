package scx

// Slots returns how many slots of a cgroup are taken.
func (c *Caps) Slots(cgroupID uint64) (int, error) {
	row, err := c.row(cgroupID)
	if row == nil {
		return 0, err
	}
	return int(row.Used), nil
}
