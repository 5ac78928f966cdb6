//go:build !race

package remedy

const randomHosts = 500
