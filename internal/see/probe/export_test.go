package probe

// SetThreadSlotBits sets the number of thread slots of probes that are opened from now on, until restore.
func SetThreadSlotBits(n uint32) (restore func()) {
	was := threadSlotBits
	threadSlotBits = n
	return func() { threadSlotBits = was }
}
