package main

// neighbour runs a shell's command in a cgroup beside the target, which has the usual 1024 CPU
// shares. The target gets fewer.
func (s *stage) neighbour(shares uint64, command string) error {
	beside, err := s.group(s.box.Top(), "beside")
	if err != nil {
		return err
	}
	if err := s.limited.SetShares(shares); err != nil {
		return err
	}
	return s.start(program{in: beside, args: []string{"/bin/sh", "-c", command}})
}
