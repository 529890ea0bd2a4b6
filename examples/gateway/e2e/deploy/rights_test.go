package deploy

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/examples/gateway/translate"
)

// The containers run as the manifests say, with the rights of their ServiceAccount, while
// everything happens that a right is for.
func TestTheRightsOfTheManifestsSufficeAndEachIsUsed(t *testing.T) {
	for _, overlay := range []string{"gateway-api", "namespaces"} {
		t.Run(overlay, func(t *testing.T) {
			w, objects := newWorld(t), manifests(t, overlay)
			w.create(namespace("shop"))
			w.create(objects...)
			if overlay == "namespaces" { // which has no GatewayClass, since its kind may be missing
				class := &gatewayv1.GatewayClass{Spec: gatewayv1.GatewayClassSpec{ControllerName: translate.Controller}}
				class.APIVersion, class.Kind, class.Name = gatewayv1.GroupVersion.String(), "GatewayClass", "kates"
				w.create(class)
			}
			w.create(shop(t)...)
			stop := w.start(containers(t, objects, w.dir))
			w.reports()
			w.serves()
			stop()
			requests := w.requests()
			for _, q := range requests {
				assert.NotEqual(t, 403, q.ResponseStatus.Code, "%s", q)
			}
			assert.Empty(t, unused(rights(objects), requests))
		})
	}
}

func TestTheManifestsGiveNothingElse(t *testing.T) {
	for _, overlay := range []string{"base", "gateway-api", "namespaces"} {
		for _, r := range rights(manifests(t, overlay)) {
			assert.NotContains(t, []string{"*", "delete", "deletecollection", "escalate", "bind", "impersonate"}, r.verb, r)
			assert.NotEqual(t, "*", r.resource, r)
			if r.resource == "secrets" {
				assert.Contains(t, []string{"list", "watch"}, r.verb)
				assert.Equal(t, map[string]string{"namespaces": "shop"}[overlay], r.namespace, r)
			}
		}
	}
}

func TestAMissingRightIsNamed(t *testing.T) {
	w := newWorld(t)
	w.create(namespace("gateway"))
	_, log := w.run(append(w.build(), "-listen", "", "-dir", w.dir+"/nginx")...)
	require.Eventually(t, func() bool {
		return strings.Contains(log.String(), `ingresses.networking.k8s.io is forbidden`)
	}, patience, 20*time.Millisecond)
}
