package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

const available = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: prod}
status:
  observedGeneration: 1
  conditions: [{type: Available, status: "%s", reason: Counted, message: pods are counted}]
`

func TestForWaitsForASnapshotInWhichAllObjectsSatisfyIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		c.create(api(t, "api"))
		r := c.start("deploy", "--for=condition=Available", "--timeout=10m")
		settle()
		c.status(deployed("web", "True"))
		settle()
		c.status(deployed("web", "False")) // the two are never true at once
		c.status(deployed("api", "True"))
		settle()
		assert.Empty(t, r.code, "it waits")
		c.status(deployed("web", "True"))
		assert.Zero(t, <-r.code)
		assert.Equal(t, "deployment.apps/api condition met\ndeployment.apps/web condition met\n", r.out.take())
		assert.Empty(t, r.err.take())
	})
}

func TestATimeoutNamesTheObjectsAndTheirStates(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		c.create(api(t, "api"))
		c.status(deployed("api", "True"))
		c.status(deployed("web", "False"))
		begin := time.Now()
		code, out, err := c.run("deploy,pods", "--for=condition=Available", "--timeout=20s")
		assert.Equal(t, 1, code)
		assert.Empty(t, out)
		assert.Equal(t, "error: timed out waiting for condition=Available: in the last snapshot these do not satisfy it:\n"+
			"  deployment.apps/web in prod: Available=False (Counted): pods are counted\n"+
			"  pods: there are no objects\n", err)
		assert.Equal(t, 20*time.Second, time.Since(begin).Truncate(time.Second))
	})
}

func TestATimeoutBeforeTheFirstSnapshotSaysWhatIsMissing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		c.faults.On(listsOf("pods")).Status(500, "InternalError", 0)
		for _, args := range [][]string{
			{"deploy,pods", "--for=create", "--timeout=5s"}, {"deploy,pods", "--once", "--timeout=5s"},
		} {
			code, _, err := c.run(args...)
			assert.Equal(t, 1, code)
			assert.Contains(t, err, "error: timed out")
			assert.Contains(t, err, "the first snapshot is not complete")
			assert.Contains(t, err, "pods")
		}
	})
}

func TestForDeleteCreateAndFields(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		for args, wanted := range map[string]string{
			"create":                          "service/web created\n",
			"jsonpath={.spec.type}=ClusterIP": "service/web condition met\n",
			"current":                         "service/web condition met\n",
		} {
			code, out, err := c.run("svc", "--timeout=0", "--for="+args)
			assert.Zero(t, code, err)
			assert.Equal(t, wanted, out, args)
		}
		code, out, _ := c.run("svc", "--for=create", "-o", "name")
		assert.Zero(t, code)
		assert.Equal(t, "service/web\n", out, "-o prints the snapshot")

		code, _, err := c.run("svc/web,svc/other", "--for=create", "--timeout=2s")
		assert.Equal(t, 1, code)
		assert.Contains(t, err, "  services/other: there is no such object\n")

		r := c.start("svc,deploy", "--for=delete", "--timeout=5m")
		settle()
		c.remove("v1", "Service", "web")
		settle()
		assert.Empty(t, r.code, "the deployment is there")
		c.remove("apps/v1", "Deployment", "web")
		assert.Zero(t, <-r.code)
		assert.Empty(t, r.out.take())
	})
}

func TestTheTimeoutZeroLooksOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		begin := time.Now()
		code, _, err := c.run("deploy", "--for=condition=Available", "--timeout=0")
		assert.Equal(t, 1, code)
		assert.Less(t, time.Since(begin), first)
		assert.Contains(t, err, "deployment.apps/web in prod: it has no condition Available")
	})
}

func TestAForbiddenKindSatisfiesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		c.faults.On(listsOf("secrets")).Status(403, "Forbidden", 0)
		code, _, err := c.run("svc,secrets", "--for=create", "--timeout=1m")
		assert.Equal(t, 1, code)
		assert.Contains(t, err, "\n  secrets: forbidden: ")
	})
}
