package container

import "strings"

// Describe says what a container is beside its name, for people: "docker container, image cart:2, service shop/cart". It
// is "" for units and plain cgroups.
func (c *Container) Describe() string {
	if c.ID == "" || c.Runtime == "" || c.Runtime == Systemd {
		return ""
	}
	parts := []string{c.Runtime + " container"}
	if c.QoS != "" {
		parts = append(parts, "QoS "+c.QoS)
	}
	if c.Image != "" {
		parts = append(parts, "image "+c.Image)
	}
	if service := c.ComposeService(); service != "" {
		parts = append(parts, "service "+service)
	}
	return strings.Join(parts, ", ")
}

// ComposeService is compose's "project/service"; without a project the service alone, "" where there is none.
func (c *Container) ComposeService() string {
	if c.Project != "" && c.Service != "" {
		return c.Project + "/" + c.Service
	}
	return c.Service
}
