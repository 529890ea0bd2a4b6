package translate

// settings reads the ConfigMap of settings.
func (t *translation) settings() {}

// ingresses adds what Ingresses ask for.
func (t *translation) ingresses() {}

// gateways adds what Gateways and their Routes ask for.
func (t *translation) gateways() {}
