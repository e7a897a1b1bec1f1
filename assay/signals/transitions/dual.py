"""Values learned from what is on record, by the duals of reinforcement and of imitation learning."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.errors import UsageError
from assay.ops.implicit_value import CLIP, Form, gain_weight, huber, value_loss
from assay.policies.control.networks import Networks
from assay.signals.transitions.columns import Drawn


class DualCritic(torch.nn.Module):
    """Twin Q of states and actions and V of states, none of which looks at an action that is not on record.

        V:      mean over transitions of l(Q'(s, a) - V(s)),   Q' the smaller of the slow twins
        Q_k:    mean of huber_20(Q_k(s, a) - r - discount (1 - done) V(s'))
        slow <- (1 - rate) slow + rate fast
        weights of the transitions' likelihoods:  min(exp(temperature (Q'(s, a) - V(s))), 100)

    l is :func:`~assay.ops.implicit_value.value_loss`. V is updated before the weights are told, and Q after, as in the
    authors' code. Targets are constants.

    Args:
        sizes: S and A.
        form, weight: of l.
        temperature: of the weights; 0 is cloning.
        discount, rate: see above; in [0, 1] and (0, 1].
        lr: of Adam, for both.
        hidden: widths of the layers.
        clip: of the exponent of ``xql``.

    Source: Dual RL (arXiv 2302.08560), f-DVL, and its authors' code.
    """

    def __init__(
        self,
        sizes: tuple[int, int],
        form: Form = "chi_square",
        weight: float = 0.7,
        temperature: float = 3.0,
        discount: float = 0.99,
        rate: float = 0.005,
        lr: float = 3e-4,
        hidden: Sequence[int] = (256, 256),
        clip: float = CLIP,
    ):
        super().__init__()
        states, actions = sizes
        self.form, self.weight, self.temperature, self.clip = form, weight, temperature, clip
        self.discount, self.rate = discount, rate
        self.q, self.v = Networks(2, states + actions, hidden, 1), Networks(1, states, hidden, 1)
        self.slow = deepcopy(self.q).requires_grad_(False)
        self.optimizers = [torch.optim.Adam(part.parameters(), lr=lr, fused=True) for part in (self.v, self.q)]

    def twins(
        self, states: Float[Tensor, "M S"], actions: Float[Tensor, "M A"], slow: bool = False
    ) -> Float[Tensor, "2 M"]:
        found: Tensor = (self.slow if slow else self.q)(torch.cat([states, actions], -1))[..., 0]
        return found

    def values(self, states: Float[Tensor, "M S"]) -> Float[Tensor, "M"]:
        found: Tensor = self.v(states)[0, :, 0]
        return found

    def imitated(self, drawn: Drawn) -> Drawn:
        """Return those of the transitions that V is of and the policy imitates."""
        return drawn

    @torch.no_grad()
    def advantage(self, drawn: Drawn) -> Float[Tensor, "M"]:
        """Return Q'(s, a) - V(s)."""
        return self.twins(drawn.states, drawn.actions, slow=True).min(0).values - self.values(drawn.states)

    def value_loss(self, drawn: Drawn) -> Float[Tensor, ""]:
        best = self.twins(drawn.states, drawn.actions, slow=True).min(0).values
        return value_loss(best - self.values(drawn.states), self.form, self.weight, self.clip).mean()

    def q_loss(self, drawn: Drawn, fresh: Float[Tensor, "M A"] | None = None) -> Float[Tensor, ""]:
        """Return the loss of both twins."""
        target = drawn.rewards + self.discount * torch.where(drawn.done, 0.0, self.values(drawn.after)).detach()
        return huber(self.twins(drawn.states, drawn.actions) - target).mean(-1).sum()

    def update(self, drawn: Drawn, fresh: Float[Tensor, "M A"] | None = None) -> tuple[Tensor, dict[str, float]]:
        """Learn from transitions; return the weights of the likelihoods of those that are imitated, and losses.

        Args:
            drawn: transitions.
            fresh: actions that the policy draws in their states, for critics that look at some.
        """
        imitated = self.imitated(drawn)
        of_v = self.value_loss(imitated)
        self._step(0, of_v)
        advantage = self.advantage(imitated)
        of_q = self.q_loss(drawn, fresh)
        self._step(1, of_q)
        with torch.no_grad():
            for slow, fast in zip(self.slow.parameters(), self.q.parameters(), strict=True):
                slow.lerp_(fast, self.rate)
        found = {"critic/v_loss": of_v.item(), "critic/q_loss": of_q.item(), "critic/gain": advantage.mean().item()}
        return gain_weight(advantage, self.temperature), found

    def _step(self, which: int, loss: Float[Tensor, ""]) -> None:
        optimizer = self.optimizers[which]
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    def kept(self) -> dict[str, Any]:
        """State of networks and optimisers."""
        return {"networks": self.state_dict(), "optimizers": [o.state_dict() for o in self.optimizers]}

    def keep(self, state: dict[str, Any]) -> None:
        """Take what :meth:`kept` returned."""
        self.load_state_dict(state["networks"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)


class RecoilCritic(DualCritic):
    """Q that is high where demonstrations go and low where the policy would, without rewards or a discriminator.

        Q_k:  beta (mean_mix Q_k(s, a~) - mean_expert Q_k(s, a)) + mean_mix (discount V(s') - Q_k(s, a))^2 / 4

    a~ is drawn from the policy; *mix* are all transitions that were drawn, demonstrations among them, as many as
    others. Nothing follows a transition that is done. V and the weights are those of :class:`DualCritic`.

    Args:
        beta: in (0, 1]; the rest as there.

    Source: Dual RL (arXiv 2302.08560), ReCOIL with Pearson's chi-square.
    """

    def __init__(self, *arguments: Any, beta: float = 0.5, **options: Any):
        super().__init__(*arguments, **options)
        self.beta = beta

    def q_loss(self, drawn: Drawn, fresh: Float[Tensor, "M A"] | None = None) -> Float[Tensor, ""]:
        assert fresh is not None
        q = self.twins(drawn.states, drawn.actions)
        after = self.discount * torch.where(drawn.done, 0.0, self.values(drawn.after)).detach()
        pushed = self.twins(drawn.states, fresh).mean(-1) - q[:, drawn.expert].mean(-1)
        return (self.beta * pushed + ((after - q) ** 2).mean(-1) / 4).sum()


class BoundedRecoilCritic(DualCritic):
    """ReCOIL as its authors' code has it: what a demonstration is worth is said, and the rest follows.

        Q_k:  (mean_demos (Q_k(s, a) - top)^2 + mean_mix (Q_k(s, a) - y)^2) / 2,
              y = -step + discount V(s'),   of what is done -step - discount top

    The first half of the transitions are *demos*; the others, *mix*, are of all that is on record, demonstrations
    among them, and V and the policy learn from these alone. No reward is read, and no action of the policy's looked at.

    Args:
        top: above 0; the rest as in :class:`DualCritic`. The authors have form ``xql`` of weight 1 to 20, exponents cut
            at 7, and 1,024 transitions of each half.
        step: what a step costs.

    Source: the code of Dual RL's ReCOIL, which took both numbers from LS-IQ (arXiv 2303.00599).
    """

    def __init__(self, *arguments: Any, top: float = 200.0, step: float = 2.0, **options: Any):
        super().__init__(*arguments, **options)
        self.top, self.step = top, step

    def imitated(self, drawn: Drawn) -> Drawn:
        return drawn[len(drawn) // 2 :]

    def q_loss(self, drawn: Drawn, fresh: Float[Tensor, "M A"] | None = None) -> Float[Tensor, ""]:
        demos, mix = drawn[: len(drawn) // 2], self.imitated(drawn)
        after = torch.where(mix.done, -self.top, self.values(mix.after)).detach()
        off = (
            self.twins(demos.states, demos.actions) - self.top,
            self.twins(mix.states, mix.actions) + self.step - self.discount * after,
        )
        return torch.stack([(gap**2).mean(-1).sum() / 2 for gap in off]).sum()


def check_critic(form: Form, weight: float, temperature: float, discount: float, rate: float, beta: float) -> None:
    """Raise UsageError for an option out of range."""
    if not 0 <= discount <= 1 or not 0 < rate <= 1 or temperature < 0 or not 0 < beta <= 1:
        raise UsageError(
            f"critic: discount {discount:g} must be in [0, 1], rate {rate:g} and beta {beta:g} in (0, 1], temperature "
            f"{temperature:g} >= 0"
        )
    if weight <= 0 or (form != "xql" and weight >= 1):
        raise UsageError(f"critic {form}: weight {weight:g} must be above 0, and of f-DVL below 1")
