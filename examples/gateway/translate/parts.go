package translate

// gateways adds what Gateways and their Routes ask for.
func (t *translation) gateways() {}
