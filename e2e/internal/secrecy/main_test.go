package secrecy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// planting is the environment variable that makes this process a run that says a secret, or none.
const planting = "KATES_E2E_PLANTS"

func TestMain(m *testing.M) {
	if where, set := os.LookupEnv(planting); set {
		_ = os.Unsetenv(planting) // it is not for the listener
		os.Exit(Main(func() int {
			plants[where]()
			return 0
		}))
	}
	if os.Getenv(listening) != "" {
		os.Exit(Main(nil))
	}
	os.Exit(m.Run())
}

const planted = "a planted secret"

func saying(say func(string)) func() {
	return func() {
		Learn("the plant", []byte(planted))
		say(planted)
	}
}

// plants say a secret in a way.
var plants = map[string]func(){
	"nowhere":     saying(func(string) { fmt.Println("all is well") }),
	"by output":   saying(func(s string) { fmt.Println(s) }),
	"by errors":   saying(func(s string) { fmt.Fprintln(os.Stderr, s) }),
	"by a text":   saying(func(s string) { Say("a status", s) }),
	"by a writer": saying(func(s string) { _, _ = io.WriteString(Writer(), s) }),
	"by a log":    saying(func(s string) { slog.Info("x", "y", s) }),
	"by a quiet log": saying(func(s string) {
		Logs()
		slog.Debug("x", "y", s)
	}),
	"by klog": saying(func(s string) {
		Logs()
		klog.V(4).Info(s)
	}),
	"by a panic":       saying(func(s string) { panic(s) }),
	"by another panic": saying(func(s string) { panic(fmt.Errorf("%q", s)) }),
	"by a child": saying(func(s string) {
		child := exec.Command("/bin/sh", "-c", "echo "+strings.ReplaceAll(s, " ", `\ `)+" >&2")
		child.Stderr = os.Stderr
		_ = child.Run()
	}),
	"before it was known": func() {
		fmt.Println(planted)
		Learn("the plant", []byte(planted))
	},
	"unmarked": func() { Learn("the plant", []byte("yes")) },
}

func TestARunThatSaysASecretFailsAndAnotherDoesNot(t *testing.T) {
	for where := range plants {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			run := exec.CommandContext(t.Context(), os.Args[0])
			run.Env = append(os.Environ(), planting+"="+where, "TMPDIR="+t.TempDir())
			out, err := run.CombinedOutput()
			if where == "nowhere" {
				require.NoError(t, err, "%s", out)
				assert.Equal(t, "all is well\n", string(out), "output is passed on")
				return
			}
			require.Error(t, err, "%s", out)
			assert.Contains(t, string(out), "secrecy: the plant")
		})
	}
}

func TestOutputIsPassedOnAndTheCodeOfTheRunStays(t *testing.T) {
	run := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestAValueThatIsTooShortToBeFoundIsSaid$", "-test.v")
	out, err := run.CombinedOutput()
	require.NoError(t, err)
	assert.True(t, bytes.Contains(out, []byte("--- PASS")), "%s", out)
}

// answers is a server that stores everything and issues a token.
type answers struct{}

func (answers) RoundTrip(r *http.Request) (*http.Response, error) {
	body := `{"kind":"Secret","apiVersion":"v1"}`
	if strings.HasSuffix(r.URL.Path, "/token") {
		body = `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","status":{"token":"the token that was issued"}}`
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

func TestSecretsAreLearnedFromRequests(t *testing.T) {
	require.NoError(t, open(t.TempDir()))
	t.Cleanup(shut)
	for _, form := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		config := &rest.Config{Host: "http://server", BearerToken: "the token that is used", ContentConfig: rest.ContentConfig{ContentType: form}}
		config.Wrap(func(http.RoundTripper) http.RoundTripper { return answers{} })
		config.Wrap(Transport)
		c, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		secrets, ctx := c.CoreV1().Secrets("ns"), t.Context()
		s := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: map[string]string{"a": "no secret"}},
			Data:       map[string][]byte{"k": []byte(form + " data")}, StringData: map[string]string{"k": form + " text"},
		}
		_, err = secrets.Create(ctx, s, metav1.CreateOptions{})
		require.NoError(t, err)
		for as, patch := range map[types.PatchType]string{
			types.MergePatchType: `{"metadata":{"labels":{"a":"no secret"}},"data":{"k":"YSBtZXJnZQ=="},"stringData":{"k":"merged"}}`,
			types.JSONPatchType:  `[{"op":"add","path":"/data/k","value":"YSBKU09O"},{"op":"add","path":"/stringData","value":{"k":"added"}}]`,
		} {
			_, err = secrets.Patch(ctx, "x", as, []byte(patch), metav1.PatchOptions{})
			require.NoError(t, err)
		}
		token(t, ctx, c)
	}
	for _, secret := range []string{
		"application/json data", "application/json text", "application/vnd.kubernetes.protobuf data",
		"a merge", "merged", "a JSON", "added", "the token that is used", "the token that was issued",
	} {
		assert.True(t, book.learned[secret], secret)
		delete(book.learned, secret)
	}
	delete(book.learned, "application/vnd.kubernetes.protobuf text")
	assert.Empty(t, book.learned)
}

func token(t *testing.T, ctx context.Context, c kubernetes.Interface) {
	t.Helper()
	got, err := c.CoreV1().ServiceAccounts("ns").CreateToken(ctx, "x", tokenRequest(), metav1.CreateOptions{})
	require.NoError(t, err)
	assert.Equal(t, "the token that was issued", got.Status.Token, "the answer is passed on")
}

func tokenRequest() *authenticationv1.TokenRequest { return &authenticationv1.TokenRequest{} }
