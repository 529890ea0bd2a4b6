package translate

// settings reads the ConfigMap of settings.
func (t *translation) settings() {}

// ingresses adds what Ingresses ask for.
func (t *translation) ingresses() {}
