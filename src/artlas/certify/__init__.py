r"""Certificates: check the paper's bounds on given graphs, with values bounded from both sides.

The least energies :math:`e_k^*(G) = d^2(G, \beta_k)` are unknown. The energy of any coupling, such
as a local optimum found by :mod:`artlas.gw.solver`, bounds them from above;
:mod:`artlas.gw.bounds` bounds them from below. Every quantity is therefore an interval that
contains the true value:

- :math:`e^*, d(G, G')`, the energy of the nearest base :math:`m^* = \min_k e_k^*` and the covering
  radius increase with the least energies, so the solver's value is their **upper** end.
- The amortisation error :math:`\eta(G) = \max_k |\sqrt{e_k} - \sqrt{e_k^*}|` decreases with them,
  so the solver's value is its **lower** end.
- The excess :math:`\Delta(G) = \min_{k \in \mathcal K^*} [e_k - e_k^*]` also depends on which bases
  are nearest. Any base whose lower bound does not exceed the least upper bound may be nearest; the
  ends are the least and the largest excess over all of these.

The covering radius is taken over the given graphs, which are the support of the statements. An
inequality x <= y *holds* if all values in the intervals satisfy it, is *violated* if none do, and
is *not decided* otherwise.
"""

from artlas.certify.certificate import HOLDS as HOLDS
from artlas.certify.certificate import TOLERANCE as TOLERANCE
from artlas.certify.certificate import UNDECIDED as UNDECIDED
from artlas.certify.certificate import VIOLATED as VIOLATED
from artlas.certify.certificate import Certificate as Certificate
from artlas.certify.certificate import Interval as Interval
from artlas.certify.certificate import Statement as Statement
from artlas.certify.measure import certify as certify
