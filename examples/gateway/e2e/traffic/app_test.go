package traffic

// app is what is healthy in most tests: several hosts and paths, HTTP and TLS, Ingresses and an
// HTTPRoute.
type app struct {
	services []*service // a, b, c
	routes   []healthy
}

func (w *world) app() *app {
	w.Helper()
	a := &app{services: []*service{w.service("a", 2), w.service("b", 2), w.service("c", 2)}}
	w.create(
		w.authority.secret("tls", "two.test"),
		ingress("one", "one.test", to{"/", "a"}, to{"/b", "b"}, to{"/b/c", "c"}),
		withTLS(ingress("two", "two.test", to{"/", "b"}, to{"/c", "c"}), "tls"),
		webGateway(),
		route("routes", "routes.test", to{"/", "c"}, to{"/a", "a"}),
	)
	a.routes = []healthy{
		{"http://one.test/", "a"}, {"http://one.test/b", "b"}, {"http://one.test/b/c/d?e=f", "c"},
		{"https://two.test/", "b"}, {"https://two.test/c", "c"}, {"http://two.test/c?d=e", ""},
		{"http://routes.test/x", "c"}, {"http://routes.test/a/", "a"},
	}
	return a
}
