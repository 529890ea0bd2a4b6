package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// listsOf are lists and watches of a resource.
func listsOf(resource string) katestest.Match { return katestest.Match{Resource: resource} }

// api is the deployment of shop under another name.
func api(t *testing.T, name string) string {
	t.Helper()
	all := strings.Split(shop, "---")
	return strings.Replace(all[1], "{name: web, namespace", "{name: "+name+", namespace", 1)
}

// deployed is the status of a deployment.
func deployed(name, is string) string { return fmt.Sprintf(available, name, is) }

func (c *cluster) remove(apiVersion, kind, name string) {
	c.t.Helper()
	u := kates.NewUnstructured(kind, apiVersion)
	u.SetNamespace("prod")
	u.SetName(name)
	require.NoError(c.t, c.user.Delete(c.t.Context(), u, nil))
}
