package translate

// ingresses adds what Ingresses ask for.
func (t *translation) ingresses() {}

// gateways adds what Gateways and their Routes ask for.
func (t *translation) gateways() {}
