package translate

import (
	"maps"
	"slices"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
)

// prefix is that of the annotations of this controller.
const prefix = "gateway.example.com/"

// annotated is what the annotations of an Ingress say.
type annotated struct {
	// gateway.example.com/use-regex: "true": paths of the type ImplementationSpecific are regular
	// expressions (PCRE), from the beginning of the path.
	regex bool
	// gateway.example.com/ssl-redirect: "false": hosts with TLS are served over HTTP, too. Else
	// HTTP answers with a redirect to HTTPS, as users of other controllers expect it.
	redirect bool
	// gateway.example.com/timeout: 30s: of the endpoints' answers.
	timeout time.Duration
	// gateway.example.com/canary-weight: "20": this Ingress takes 20 percent of the requests that
	// another one of the namespace gets for the same host and path.
	canary bool
	weight int
}

// annotations reads those of an Ingress. A mistake is a problem, and counts as no annotation. So a
// canary with a bad weight gets nothing, and not everything.
func (t *translation) annotations(in *networkingv1.Ingress) annotated {
	a := annotated{redirect: true}
	for _, key := range slices.Sorted(maps.Keys(in.Annotations)) {
		name, is := strings.CutPrefix(key, prefix)
		if !is {
			continue
		}
		var err error
		switch value := in.Annotations[key]; name {
		case "use-regex":
			err = boolean(&a.regex, value)
		case "ssl-redirect":
			err = boolean(&a.redirect, value)
		case "timeout":
			err = duration(&a.timeout, value)
		case "canary-weight":
			a.canary = true
			err = integer(&a.weight, value, 0, 100)
		default:
			t.problem(in, "UnknownAnnotation", "there is no annotation %s", key)
		}
		if err != nil {
			t.problem(in, "InvalidAnnotation", "%s: %v", key, err)
		}
	}
	return a
}
