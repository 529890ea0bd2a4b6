package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEachSnapshotIsALineInAPipe(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		r := c.start("svc,deploy", "pods")
		settle()
		assert.Regexp(t, `^\d\d:\d\d:\d\d #1 services 1, deployments 1, pods 0\n$`, r.out.take())
		c.create(`{apiVersion: v1, kind: Service, metadata: {name: new, namespace: prod}, spec: {ports: [{port: 80}]}}`)
		settle()
		assert.Regexp(t, `^\S+ #2 services 2 \(\+1\), deployments 1, pods 0\n$`, r.out.take())
		c.status(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: prod}, status: {replicas: 1}}`)
		settle()
		assert.Regexp(t, `^\S+ #3 services 2, deployments 1 \(~1\), pods 0\n$`, r.out.take())
		assert.Zero(t, r.stop(nil))
		assert.Empty(t, r.err.take())
	})
}

func TestTheFlagsOfKubectlSayWhichObjects(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		for args, wanted := range map[string]string{
			"cm --once -o name":                                     "configmap/other",
			"svc --once -o name":                                    "service/web",
			"svc -A -l app=web --once -o name":                      "service/web",
			"svc -A -l app!=web --once -o name":                     "",
			"svc,cm -A --once -o name":                              "service/web configmap/other",
			"services -n elsewhere --once -o name":                  "",
			"svc/web deploy/web --once -o name":                     "service/web deployment.apps/web",
			"svc/none --once -o name":                               "",
			"svc/none svc --once -o name":                           "service/web",
			"svc svc/none --once -o name":                           "service/web",
			"svc/none svc/web --once -o name":                       "service/web",
			"svc --field-selector metadata.name=web --once -o name": "service/web",
			"ns --once -o name -l kubernetes.io/metadata.name=prod": "namespace/prod",
			"Deployment.v1.apps svc svc/web --once -o name":         "deployment.apps/web service/web",
		} {
			if strings.HasPrefix(args, "cm ") {
				args += " --context green"
			}
			code, out, err := c.run(strings.Fields(args)...)
			assert.Zero(t, code, "%s: %s", args, err)
			assert.Equal(t, wanted, strings.Join(strings.Fields(out), " "), args)
		}
	})
}

func TestErrorsAndExitCodesAreKubectls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		for args, wanted := range map[string]string{
			"foo":                     `error: the server doesn't have a resource type "foo"`,
			"svc,foo --once":          `error: the server doesn't have a resource type "foo"`,
			"":                        `error: you must specify the kinds to watch`,
			"svc/":                    `error: arguments in resource/name form must have a single resource and name`,
			"svc,":                    `error: "svc," is not a kind`,
			"svc/web -l a=b":          `error: name cannot be provided when a selector is specified`,
			"svc/web -A":              `error: a resource cannot be retrieved by name across all namespaces`,
			"svc -o xml":              `error: unable to match a printer suitable for the output format "xml"`,
			"svc --bogus":             "error: unknown flag: --bogus\nSee 'snapwatch --help' for usage",
			"svc --for=ready":         `error: --for=ready is not a condition`,
			"svc --once --for=create": `error: --once and --for cannot be used together`,
			"svc --timeout 1s":        `error: --timeout is for --for and --once`,
			"svc --interval 0s":       `error: --interval=0s is not a time above 0`,
			"svc -n a_b":              `error: invalid namespace "a_b"`,
			"svc -l a=b=c":            `error: `,
			"svc --field-selector status.phase=Running --once": `field label not supported: status.phase`,
			"svc --context none":              `context "none" does not exist`,
			"svc --replay x --record y":       `error: --record and --replay cannot be used together`,
			"--replay /does/not/exist":        `error: open /does/not/exist`,
			"--replay x --speed -1":           `error: --speed=-1 is not a speed`,
			"svc --record /does/not/exist/at": `no such file`,
			"svc --serve nowhere":             `error: --serve=nowhere is not an address`,
			"svc --plain -o json":             `error: --plain and -o cannot be used together`,
		} {
			code, out, err := c.run(strings.Fields(args)...)
			assert.Equal(t, 1, code, args)
			assert.Empty(t, out, args)
			assert.Contains(t, err, wanted, args)
		}
		r := c.start("svc")
		settle()
		assert.Equal(t, 130, r.stop(signalled(2)), "as after ctrl-C")
		assert.Empty(t, r.err.take())
	})
}

func TestAForbiddenKindSaysSoAndHoldsNothingUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		rule := c.faults.On(katestest.Match{Resource: "secrets"}).Status(403, "Forbidden", 0)
		r := c.start("svc", "secrets")
		time.Sleep(time.Minute)
		assert.Regexp(t, `^\S+ #1 services 1, secrets forbidden\n$`, r.out.take())
		assert.Regexp(t, `^secrets: forbidden: \S.*\n$`, r.err.take(), "it is said once")
		rule.Stop()
		time.Sleep(5 * time.Minute)
		assert.Regexp(t, `#2 services 1, secrets 1 \(\+1\)\n$`, r.out.take())
		assert.Equal(t, "secrets: synced again\n", r.err.take())
		assert.Zero(t, r.stop(nil))
	})
}

func TestASnapshotWithoutAForbiddenKindIsAnErrorOfOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		c.faults.On(katestest.Match{Resource: "secrets"}).Status(403, "Forbidden", 0)
		code, out, err := c.run("svc,secrets", "--once", "-o", "name")
		assert.Equal(t, 1, code)
		assert.Equal(t, "service/web\n", out, "what there is, is printed")
		assert.Contains(t, err, "error: not all kinds are in the snapshot: secrets: forbidden")
	})
}

const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: hosts.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: hosts, singular: host, kind: Host, listKind: HostList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
`

func TestAKindThatIsInstalledLaterIsMissingUntilThen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		r := c.start("svc", "hosts.example.com", "--ignore-not-found")
		settle()
		assert.Regexp(t, `#1 services 1, hosts missing\n$`, r.out.take())
		assert.Contains(t, r.err.take(), "hosts: missing: ")
		c.create(crd)
		time.Sleep(time.Minute)
		c.create(`{apiVersion: example.com/v1, kind: Host, metadata: {name: a, namespace: prod}}`)
		time.Sleep(time.Minute)
		assert.Contains(t, r.out.take(), "hosts 1 (+1)")
		assert.Equal(t, "hosts: synced again\n", r.err.take())
		assert.Zero(t, r.stop(nil))
	})
}

func TestAServerThatFailsIsShownAsRetrying(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		r := c.start("svc", "pods")
		settle()
		r.out.take()
		c.faults.On(katestest.Match{Resource: "pods"}).Status(500, "InternalError", 0)
		c.faults.Now(katestest.Match{Resource: "pods"}).Cut(0)
		settle()
		assert.Contains(t, r.err.take(), "pods: retrying: ")
		c.faults.Heal()
		time.Sleep(5 * time.Minute)
		assert.Equal(t, "pods: synced again\n", r.err.take())
		assert.Zero(t, r.stop(nil))
	})
}

func TestNoSecretDataIsInLinesDeltasOrTables(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		for _, args := range []string{
			"secrets", "secrets -o deltas", "secrets -o table", "secrets -o wide", "secrets -o name",
			"secrets --for=jsonpath={.data.password}=x --timeout=5s",
		} {
			r := c.start(strings.Fields(args)...)
			settle()
			require.NoError(t, c.user.Patch(t.Context(), &corev1.Secret{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "key"},
			}, kates.MergePatchType, []byte(`{"metadata":{"annotations":{"at":"`+time.Now().String()+`"}}}`), nil))
			time.Sleep(10 * time.Second)
			r.stop(nil)
			all := r.out.String() + r.err.String()
			assert.NotEmpty(t, all, args)
			assert.NotContains(t, all, hunter, args)
			assert.NotContains(t, all, hunter64, args)
		}
		_, out, _ := c.run("secrets", "--once", "-o", "json")
		assert.Contains(t, out, hunter64, "JSON is what kubectl prints")
	})
}

func TestManagedFieldsArePrintedWhereTheyAreWanted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		c.create(api(t, "api"))
		_, out, _ := c.run("deploy/api", "--once", "-o", "yaml")
		assert.NotContains(t, out, "managedFields")
		_, out, _ = c.run("deploy/api", "--once", "-o", "yaml", "--show-managed-fields")
		assert.Contains(t, out, "managedFields")
	})
}

func TestSecretsAreNotEvenReadWhereOnlyNamesAreShown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t)
		for args, whole := range map[string]bool{
			"secrets --once": false, "secrets --once -o deltas": false, "secrets --once -o yaml": true,
		} {
			c.accepts = nil
			code, _, err := c.run(strings.Fields(args)...)
			assert.Zero(t, code, err)
			require.NotEmpty(t, c.accepts)
			for _, accept := range c.accepts {
				assert.Equal(t, whole, !strings.Contains(accept, "as=PartialObjectMetadata"), "%s: %s", args, accept)
			}
		}
	})
}

func TestWhatOnlyNamesObjectsReadsNoMoreThanTheirMetadata(t *testing.T) {
	for args, whole := range map[string]bool{
		"": false, "-o deltas": false, "-o name": false, "--for=delete": false, "--for=create": false,
		"-o json": true, "-o table": true, "--for=condition=Ready": true, "--record f": true, "--serve :0": true,
	} {
		cmd, o := newCommand("snapwatch", nil)
		require.NoError(t, cmd.ParseFlags(strings.Fields(args)))
		v, err := o.view(streams{})
		require.NoError(t, err)
		assert.Equal(t, whole, v.whole(o), args)
	}
}
