package translate

// settings reads the ConfigMap of settings.
func (t *translation) settings() {}

// ingresses adds what Ingresses ask for.
func (t *translation) ingresses() {}

// gateways adds what Gateways and their Routes ask for.
func (t *translation) gateways() {}

// upstream adds the endpoints of a Service's port, and returns the ID of the upstream. The port has
// a name or a number. An error says why there is none; a Service without endpoints is no error.
func (t *translation) upstream(namespace, service string, port backendPort) (id string, err error) {
	return "", nil
}

// certificate adds the certificate of a Secret, and returns its ID. An error says what is wrong with
// it.
func (t *translation) certificate(namespace, secret string) (id string, err error) { return "", nil }

// backendPort is a port of a Service: its name, or its number.
type backendPort struct {
	name   string
	number int32
}
