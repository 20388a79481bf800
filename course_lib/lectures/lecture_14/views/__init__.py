"""What page 14 shows that no other page does."""

from .page_faults import count_faults, faults_chart, fresh_faults
from .roofline import roofline_chart
from .speeds import speed_chart
from .traffic_bars import traffic_chart
