package probe

// Kept is a probe that is opened for the first of several recordings, one after the other, and stays for the next ones: loading
// its programs takes longer than a short recording on a busy host. The zero value is ready; it is for one goroutine at a time.
type Kept struct {
	// Around runs the loading, so that the caller can give it a weight and measure it; nil: it runs as it is.
	Around func(load func())
	probe  *Probe
}

// Open returns the probe that is open, or opens one. The errors are those of Open.
func (k *Kept) Open(o Options) (p *Probe, err error) {
	if k.probe != nil {
		return k.probe, nil
	}
	load := func() { p, err = Open(o) }
	if k.Around != nil {
		k.Around(load)
	} else {
		load()
	}
	if err == nil {
		k.probe = p
	}
	return p, err
}

// Close closes the probe, if one is open.
func (k *Kept) Close() error {
	if k.probe == nil {
		return nil
	}
	p := k.probe
	k.probe = nil
	return p.Close()
}
