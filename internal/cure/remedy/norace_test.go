//go:build !race

package remedy

const randomHosts = 1000
