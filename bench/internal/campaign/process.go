package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/kates-go/kates/bench/internal/consumer"
	"github.com/kates-go/kates/bench/internal/derived"
	"github.com/kates-go/kates/bench/internal/dialog"
	"github.com/kates-go/kates/bench/internal/gateway"
	"github.com/kates-go/kates/bench/internal/operator"
)

// KubeconfigEnv is the environment variable with the kubeconfig file for a consumer's process.
const KubeconfigEnv = "BENCH_KUBECONFIG"

// process is a consumer, an operator or a gateway in a process of its own.
type process struct {
	name    string
	command *exec.Cmd
	in      io.WriteCloser
	write   *json.Encoder
	read    *json.Decoder
}

// start starts this program as a consumer, which then waits for commands.
func start(ctx context.Context, v consumer.Variant, kubeconfig string, env ...string) (*process, error) {
	return startAs(ctx, "consume", v.Name, kubeconfig, append(slices.Clone(v.Env), env...)...)
}

// startAs starts this program with a subcommand and a name.
func startAs(ctx context.Context, command, name, kubeconfig string, env ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return startProgram(ctx, name, self, append([]string{KubeconfigEnv + "=" + kubeconfig}, env...), command, name)
}

// startProgram starts a program, which then waits for commands. The name is for errors.
func startProgram(ctx context.Context, name, path string, env []string, args ...string) (*process, error) {
	c := exec.CommandContext(ctx, path, args...)
	c.Env = append(os.Environ(), env...)
	c.Stderr = os.Stderr
	c.WaitDelay = 10 * time.Second
	in, err := c.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return &process{name: name, command: c, in: in, write: json.NewEncoder(in), read: json.NewDecoder(out)}, nil
}

// ask sends a command and waits for its answer.
func (p *process) ask(c consumer.Command) (consumer.Answer, error) {
	return asked(p, string(c.Do), c, dialog.Receive[consumer.Answer])
}

// answer waits for another answer.
func (p *process) answer() (consumer.Answer, error) {
	a, err := dialog.Receive[consumer.Answer](p.read)
	if err != nil {
		err = fmt.Errorf("%s: %w", p.name, err)
	}
	return a, err
}

// askOperator is ask for an operator.
func (p *process) askOperator(c operator.Command) (operator.Answer, error) {
	return asked(p, string(c.Do), c, dialog.Receive[operator.Answer])
}

// askGateway is ask for a gateway.
func (p *process) askGateway(c gateway.Command) (gateway.Answer, error) {
	return asked(p, string(c.Do), c, dialog.Receive[gateway.Answer])
}

// askDerived is ask for a contender.
func (p *process) askDerived(c derived.Command) (derived.Answer, error) {
	return asked(p, string(c.Do), c, dialog.Receive[derived.Answer])
}

func asked[A any](p *process, what string, command any, receive func(*json.Decoder) (A, error)) (a A, err error) {
	if err := p.write.Encode(command); err != nil {
		return a, fmt.Errorf("ask %s for %s: %w", p.name, what, err)
	}
	if a, err = receive(p.read); err != nil {
		return a, fmt.Errorf("%s: %s: %w", p.name, what, err)
	}
	return a, nil
}

// stop ends the process by closing its input.
func (p *process) stop() error {
	err := p.in.Close()
	timer := time.AfterFunc(20*time.Second, func() { _ = p.command.Process.Kill() })
	defer timer.Stop()
	if err := errors.Join(err, p.command.Wait()); err != nil {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	return nil
}
