package probe

// SetDeskBits gives probes that are opened from now on other room for threads, until restore.
func SetDeskBits(n uint32) (restore func()) {
	was := deskBits
	deskBits = n
	return func() { deskBits = was }
}
